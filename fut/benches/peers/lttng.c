/* LTTng-UST's tracepoint with two integers, recorded or not, depending on the session daemon. */
#include "lttng_events.h"
#include "measure.h"

int main(void)
{
    MEASURE("LTTng-UST", 200000, , lttng_ust_tracepoint(fut_bench, two, i, i));
    return 0;
}
