/*
 * destructors TRACE: events in destructors of thread-specific data, which set their value again once. Every other
 * thread records nothing before. Prints what was lost.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include <fut.h>

static pthread_key_t key;

static void destroy(void *value)
{
    FUT_PROBE1(FUT_KEYMASK0, 2, value);
    if ((intptr_t)value == 1)
        pthread_setspecific(key, (void *)2);
}

static void *body(void *number)
{
    pthread_setspecific(key, (void *)1);
    if ((intptr_t)number % 2 == 0)
        FUT_PROBE1(FUT_KEYMASK0, 1, number);
    return 0;
}

int main(int argc, char **argv)
{
    fut_declare(1, "body", "thread:u64", NULL);
    fut_declare(2, "destructor", "round:u64", NULL);
    if (argc > 1) {
        fut_set_filename(argv[1]);
        if (fut_setup(0, FUT_KEYMASKALL, 0) != 0)
            return 2;
    }
    pthread_key_create(&key, destroy);
    for (intptr_t number = 0; number < 10; number++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, body, (void *)number) != 0)
            return 3;
        pthread_join(thread, 0);
    }
    if (argc > 1 && fut_endup(NULL) != 0)
        return 4;
    printf("%llu\n", (unsigned long long)fut_lost());
    return 0;
}
