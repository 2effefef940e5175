/* early COUNT TRACE: so many probes before setup, one after it. */
#include <stdio.h>
#include <stdlib.h>

#include <fut.h>

int main(int argc, char **argv)
{
    (void)argc;
    for (long i = atol(argv[1]); i > 0; i--)
        FUT_PROBE1(FUT_KEYMASK0, 1, i);
    printf("%llu %x\n", (unsigned long long)fut_dropped_before_setup(), fut_active);
    fut_set_filename(argv[2]);
    if (fut_setup(0, FUT_KEYMASKALL, 0) != 0)
        return 2;
    FUT_PROBE8(FUT_KEYMASK0, 2, 1, 2, 3, 4, 5, 6, 7, 8);
    FUT_PROBE3STR(FUT_KEYMASK0, 3, 1, 2, 3, "four");
    return 0; /* without fut_endup */
}
