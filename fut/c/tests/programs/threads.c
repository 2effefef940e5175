/* threads TRACE: 100 times 8 threads with 10 probes each. Prints what was lost. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include <fut.h>

static void *steps(void *number)
{
    for (int step = 0; step < 10; step++)
        FUT_PROBE2(FUT_KEYMASK0, 1, number, step);
    return 0;
}

int main(int argc, char **argv)
{
    fut_declare(1, "step", "thread:u64 step:u8", "step {step} of {thread}");
    fut_set_filename(argv[argc - 1]);
    if (fut_setup(1 << 14, FUT_KEYMASKALL, 0) != 0)
        return 2;
    for (intptr_t batch = 0; batch < 100; batch++) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++)
            if (pthread_create(&threads[i], 0, steps, (void *)(8 * batch + i)) != 0)
                return 3;
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], 0);
    }
    if (fut_endup(0) != 0)
        return 2;
    printf("%llu\n", (unsigned long long)fut_lost());
    return 0;
}
