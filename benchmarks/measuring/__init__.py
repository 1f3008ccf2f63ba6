"""What measuring this machine covers and takes, whether it repeats, and what other projects' tables say."""
