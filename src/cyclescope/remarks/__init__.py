"""What is said of values, or of their absence: its meaning for code, and the one place of its words.

Code makes a `Remark` of a member of an enumeration with the values that belong to it, and compares members.
Its sentence is made where it goes to people: to reports, and to what is read without them, which are results
in Python, a machine model's file, and what a store keeps of mixes.
"""
