/* FxT's FUT_PROBE2, as Debian ships the library: one buffer for all threads, stamped by clock_gettime. */
#define CONFIG_FUT
#include <pthread.h>
#include <unistd.h>
#include <fut.h>
#include "measure.h"

enum { BUFFER = 64 << 20, CALLS = 200000 };

static void begin(unsigned int thread)
{
    fut_reset(0xffff, thread);
    fut_keychange(FUT_ENABLE, 0xffff, thread);
}

int main(void)
{
    unsigned int thread = (unsigned int)(uintptr_t)pthread_self();
    fut_set_filename("/dev/null");
    if (fut_setup(BUFFER, 0xffff, (uintptr_t)pthread_self()) < 0) {
        fprintf(stderr, "fut_setup failed\n");
        return 1;
    }
    MEASURE("FxT", CALLS, begin(thread), FUT_PROBE2(0x1, 0x102, i, i));
    fut_keychange(FUT_DISABLE, 0xffff, thread);
    MEASURE("FxT, off", 100 * CALLS, , FUT_PROBE2(0x1, 0x102, i, i));
    return 0;
}
