/* The event that lttng.c records. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER fut_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_events.h"

#if !defined(FUT_BENCH_EVENTS) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define FUT_BENCH_EVENTS
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    fut_bench, two,
    LTTNG_UST_TP_ARGS(long, a, long, b),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(long, a, a) lttng_ust_field_integer(long, b, b)))

#endif
#include <lttng/tracepoint-event.h>
