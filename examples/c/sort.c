/*
 * A quicksort with probes of its own, and every function traced by the compiler:
 *
 *     cc -g -finstrument-functions sort.c -o sort $(pkg-config --cflags --libs fut) \
 *         -Wl,-rpath,$(pkg-config --variable=libdir fut)
 *     sigmund record -- ./sort                      or ./sort sort.fut, without a recorder
 */
#include <stdio.h>
#include <stdlib.h>

#include <fut.h>

enum { SORTED = 0x101, PIVOT = 0x102, SAID = 0x103 };

static void swap(long *a, long *b)
{
    long kept = *a;
    *a = *b;
    *b = kept;
}

static long partition(long *values, long count)
{
    long below = 0;
    for (long i = 0; i < count - 1; i++)
        if (values[i] < values[count - 1])
            swap(&values[i], &values[below++]);
    swap(&values[below], &values[count - 1]);
    FUT_PROBE2(FUT_KEYMASK0, PIVOT, below, values[below]);
    return below;
}

static void sort(long *values, long count)
{
    if (count < 2)
        return;
    long pivot = partition(values, count);
    sort(values, pivot);
    sort(values + pivot + 1, count - pivot - 1);
}

static int is_sorted(const long *values, long count)
{
    PROF_IN();
    for (long i = 1; i < count; i++)
        if (values[i - 1] > values[i]) {
            PROF_OUT();
            return 0;
        }
    PROF_OUT();
    return 1;
}

int main(int argc, char **argv)
{
    enum { COUNT = 100 };
    long values[COUNT];
    unsigned long next = 1;

    fut_declare(SORTED, "sorted", "count:u64 right:bool", "{count} values, {right}");
    FUT_PROBE1(FUT_KEYMASK0, PIVOT, 0); /* Too early without a recorder: counted and dropped. */
    if (argc > 1) {
        fut_set_filename(argv[1]);
        if (fut_setup(0, FUT_KEYMASKALL, 0) != 0)
            return 2;
    }
    for (int i = 0; i < COUNT; i++)
        values[i] = (long)((next = next * 6364136223846793005ul + 1442695040888963407ul) >> 40);
    sort(values, COUNT);
    int right = is_sorted(values, COUNT);
    FUT_PROBE2(FUT_KEYMASK0, SORTED, COUNT, right);
    fut_declare(PIVOT, "pivot", "place:u64 value:i64", "{value} stands at {place}");
    FUT_PROBESTR(FUT_KEYMASK1, SAID, "nobody declared this");
    if (argc > 1 && fut_endup(NULL) != 0)
        return 2;
    printf("%s, %llu probes came too early\n", right ? "sorted" : "not sorted",
           (unsigned long long)fut_dropped_before_setup());
    return !right;
}
