/*
 * main_ends [TRACE [later]]: main ends by pthread_exit, before the other thread. Exit handlers run when that ends, too.
 * With `later`, the other thread begins the recording, after main has ended.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fut.h>

static void at_exit(void)
{
    puts("exit handler");
}

static void *other(void *trace)
{
    usleep(100000);
    if (trace) {
        fut_set_filename(trace);
        if (fut_setup(0, FUT_KEYMASKALL, 0) != 0)
            exit(2);
    }
    FUT_PROBE1(FUT_KEYMASK0, 1, 2);
    puts("other thread");
    return 0;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    fut_declare(1, "here", "number:u64", NULL);
    atexit(at_exit);
    if (argc == 2) {
        fut_set_filename(argv[1]);
        if (fut_setup(0, FUT_KEYMASKALL, 0) != 0)
            return 2;
    }
    FUT_PROBE1(FUT_KEYMASK0, 1, 1);
    if (pthread_create(&thread, 0, other, argc == 3 ? argv[1] : 0) != 0)
        return 3;
    pthread_exit(0);
}
