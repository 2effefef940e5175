/*
 * What probes cost in C, beside rdtsc, in ticks: medians of bursts that fit into the buffer, with time for the drain
 * in between.
 *
 *     cc -O2 -finstrument-functions fut/c/benches/probe.c -o probe $(pkg-config --cflags --libs fut)
 *     taskset -c 0 ./probe /tmp/probe.fut && rm /tmp/probe.fut
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fut.h>

#define PLAIN __attribute__((no_instrument_function))
#define UNROLLED_16(BODY) BODY BODY BODY BODY BODY BODY BODY BODY BODY BODY BODY BODY BODY BODY BODY BODY

enum { ROUNDS = 1250, BURST = 16 * ROUNDS, BURSTS = 31 };

PLAIN static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

__attribute__((noinline)) static void empty(void)
{
    __asm__ volatile("");
}

#define MEASURE(NAME, BODY)                                                                 \
    do {                                                                                    \
        double costs[BURSTS];                                                               \
        for (int burst = 0; burst < BURSTS; burst++) {                                      \
            usleep(12000);                                                                  \
            uint64_t start = __builtin_ia32_rdtsc();                                        \
            for (uint64_t i = 0; i < ROUNDS; i++) {                                         \
                UNROLLED_16(BODY;)                                                          \
            }                                                                               \
            costs[burst] = (double)(__builtin_ia32_rdtsc() - start) / BURST;                \
        }                                                                                   \
        qsort(costs, BURSTS, sizeof *costs, by_value);                                      \
        printf("%-44s %6.2f ticks\n", NAME, costs[BURSTS / 2]);                             \
    } while (0)

PLAIN int main(int argc, char **argv)
{
    fut_set_filename(argv[argc - 1]);
    if (argc != 2 || fut_setup(0, FUT_KEYMASKALL & ~FUT_KEYMASK5, 0) != 0)
        return 2;
    MEASURE("rdtsc", (void)__builtin_ia32_rdtsc());
    MEASURE("FUT_PROBE0", FUT_PROBE0(FUT_KEYMASK0, 7));
    MEASURE("FUT_PROBE2", FUT_PROBE2(FUT_KEYMASK0, 7, i, i));
    MEASURE("FUT_PROBE6", FUT_PROBE6(FUT_KEYMASK0, 7, i, i, i, i, i, i));
    MEASURE("FUT_PROBESTR, 8 bytes", FUT_PROBESTR(FUT_KEYMASK0, 7, "received"));
    MEASURE("PROF_IN", PROF_IN());
    MEASURE("an empty function, instrumented", empty());
    MEASURE("FUT_PROBE2, switched off", FUT_PROBE2(FUT_KEYMASK5, 7, i, i));
    MEASURE("nothing", __asm__ volatile(""));
    fut_endup(NULL);
    printf("%llu records lost\n", (unsigned long long)fut_lost());
    return 0;
}
