"""How `bench` prints the code that it timed."""

from cyclescope.report.bench import code_lines


def test_what_is_repeated_stays_in_one_line():
    assert code_lines("2*|imul rax, rdx; nop|; add rax, rbx;\n nop") == [
        "2*|imul rax, rdx; nop|", "add rax, rbx", "nop",
    ]  # fmt: skip


def test_nops_of_a_length_open_no_repetition():
    assert code_lines("|8; add rax, rbx; |4") == ["|8", "add rax, rbx", "|4"]
