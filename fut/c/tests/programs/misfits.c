/* misfits TRACE: names that are reserved, and events whose parameters do not fit their declarations. */
#include <stdio.h>

#include <fut.h>

int main(int argc, char **argv)
{
    int reserved = fut_declare(3, "USER_CONTEXT_SWITCH", "next:u64", NULL);
    int librarys = fut_declare(4, "FUNC_ENTER", "function:pointer", NULL);
    fut_declare(1, "number", "a:u64", NULL);
    fut_declare(2, "numbers_and_text", "a:u64 b:u64 c:text", "{a} {b} {c}");
    fut_set_filename(argv[argc - 1]);
    if (fut_setup(0, FUT_KEYMASKALL, 0) != 0)
        return 2;
    FUT_PROBE2STR(FUT_KEYMASK0, 2, 7, 8, "fits");
    FUT_PROBESTR(FUT_KEYMASK0, 2, "no numbers");
    FUT_PROBE3STR(FUT_KEYMASK0, 2, 7, 8, 9, "too many");
    FUT_PROBE3(FUT_KEYMASK0, 2, 7, 8, 9);
    FUT_PROBE1STR(FUT_KEYMASK0, 1, 7, "not declared");
    FUT_PROBE1(FUT_KEYMASK0, 1, 7);
    FUT_PROBE1(FUT_KEYMASK0, 3, 9);
    printf("%d %d\n", reserved, librarys);
    return 0;
}
