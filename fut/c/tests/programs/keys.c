/* keys TRACE: event 1 under key 0 and event 2 under key 1, with the keys changed in between. */
#include <stdio.h>

#include <fut.h>

static void both(int round)
{
    FUT_PROBE1(FUT_KEYMASK0, 1, round);
    FUT_PROBE(FUT_KEYMASK1, 2, round, "not a text");
}

int main(int argc, char **argv)
{
    int before = fut_keychange(FUT_ENABLE, FUT_KEYMASKALL, 0);
    fut_set_filename(argv[argc - 1]);
    int setup = (int)fut_setup(1 << 14, FUT_KEYMASK0, 0);
    both(0);
    int enable = fut_keychange(FUT_ENABLE, FUT_KEYMASK1, 0);
    both(1);
    int disable = fut_keychange(FUT_DISABLE, FUT_KEYMASK0, 0);
    both(2);
    int wrong = fut_keychange(7, FUT_KEYMASKALL, 0);
    both(3);
    int set = fut_keychange(FUT_SETMASK, FUT_KEYMASK0, 0);
    both(4);
    int again = (int)fut_setup(0, FUT_KEYMASKALL, 0);
    int end = (int)fut_endup(NULL);
    both(5);
    int after = fut_keychange(FUT_ENABLE, FUT_KEYMASKALL, 0);
    both(6);
    printf("%d %d %d %d %d %d %d %d %d\n", before < 0, setup, enable, disable, wrong < 0, set, again < 0, end, after < 0);
    return 0;
}
