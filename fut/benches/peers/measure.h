/* Ticks of one call, the median of nine bursts, printed as a line that the bench reads. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { ROUNDS = 9 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_median(const char *name, double *costs)
{
    qsort(costs, ROUNDS, sizeof *costs, by_value);
    printf("%s\t%.3f\n", name, costs[ROUNDS / 2]);
}

/* Runs `prepare` before each burst, without measuring it; the first burst is a warm-up. */
#define MEASURE(name, calls, prepare, body)                                 \
    do {                                                                    \
        double costs[ROUNDS];                                               \
        for (int round = -1; round < ROUNDS; round++) {                     \
            prepare;                                                        \
            uint64_t start = __rdtsc();                                     \
            for (long i = 0; i < (calls); i++) {                            \
                body;                                                       \
                __asm__ volatile("" ::: "memory");                          \
            }                                                               \
            if (round >= 0)                                                 \
                costs[round] = (double)(__rdtsc() - start) / (calls);       \
        }                                                                   \
        print_median(name, costs);                                          \
    } while (0)
