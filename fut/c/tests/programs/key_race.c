/* key_race TRACE: each of 8 threads switches only its own key, and leaves it on. Prints the keys that are on. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#include <fut.h>

static _Atomic int found_off;

static void *own_key(void *number)
{
    unsigned int own = 1u << (intptr_t)number;
    for (int i = 0; i < 2000; i++) {
        if (fut_keychange(FUT_DISABLE, own, 0) != 0 || fut_keychange(FUT_ENABLE, own, 0) != 0)
            return number;
        found_off += !(fut_active & own);
    }
    return 0;
}

int main(int argc, char **argv)
{
    fut_set_filename(argv[argc - 1]);
    if (fut_setup(0, 0, 0) != 0)
        return 2;
    pthread_t threads[8];
    for (intptr_t i = 0; i < 8; i++)
        if (pthread_create(&threads[i], 0, own_key, (void *)i) != 0)
            return 3;
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], 0);
    printf("%#x, found off %d times\n", (unsigned int)fut_active, found_off);
    return 0;
}
