/*
 * fut.h: probes for programs in C. Link with libfut (`pkg-config --cflags --libs fut`).
 *
 * Under `sigmund record PROGRAM` nothing else is needed: everything is recorded from the start of the program to its
 * end. On its own, a program calls
 *
 *     fut_set_filename("prog.fut");             the trace; else /tmp/prof_file_user_$USER
 *     fut_setup(0, FUT_KEYMASKALL, 0);          from here on probes are recorded
 *     FUT_PROBE2(FUT_KEYMASK0, 0x101, a, b);    event 0x101 with two parameters, if key 0 is on
 *     fut_endup(NULL);                          the trace is complete
 *
 * `sigmund merge prog.fut -o prog.supertrace` makes it readable. The names and their meanings are those of FxT's
 * fut.h; CONFIG_FUT need not be defined. Define FUT_NO_PROBES to compile all probes away.
 *
 * A disabled probe costs a load, a test and a branch. Probes make no system call, take no lock and allocate nothing;
 * they may be used in signal handlers. Events are stored in a buffer of their LWP (kernel thread); if it is full, they
 * are counted (fut_lost). Events before fut_setup are counted and dropped (fut_dropped_before_setup, and the event
 * FUT_SETUP in the trace). A child made by fork starts its own recording: under `sigmund record` automatically, else by
 * fut_setup. A child made by a raw clone or _Fork runs no handler of the C library: until it calls fut_setup, its
 * events are dropped and counted. A set-user-ID program reads no environment variables, which its caller controls.
 */
#ifndef FUT_H
#define FUT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Modes of fut_keychange: switch these keys on; switch these keys off; switch on exactly these keys. */
#define FUT_ENABLE  0xCE03
#define FUT_DISABLE 0xCE04
#define FUT_SETMASK 0xCE05

/* Keys: bits that switch groups of probes. In traces and in the variable FUT_KEYMASK, key n is bit 32 + n. */
#define FUT_KEYMASK0   0x00000001u
#define FUT_KEYMASK1   0x00000002u
#define FUT_KEYMASK2   0x00000004u
#define FUT_KEYMASK3   0x00000008u
#define FUT_KEYMASK4   0x00000010u
#define FUT_KEYMASK5   0x00000020u
#define FUT_KEYMASK6   0x00000040u
#define FUT_KEYMASK7   0x00000080u
#define FUT_KEYMASK8   0x00000100u
#define FUT_KEYMASK9   0x00000200u
#define FUT_KEYMASK10  0x00000400u
#define FUT_KEYMASK11  0x00000800u
#define FUT_KEYMASK12  0x00001000u
#define FUT_KEYMASK13  0x00002000u
#define FUT_KEYMASK14  0x00004000u
#define FUT_KEYMASK15  0x00008000u
#define FUT_KEYMASK16  0x00010000u
#define FUT_KEYMASK17  0x00020000u
#define FUT_KEYMASK18  0x00040000u
#define FUT_KEYMASK19  0x00080000u
#define FUT_KEYMASK20  0x00100000u
#define FUT_KEYMASK21  0x00200000u
#define FUT_KEYMASK22  0x00400000u
#define FUT_KEYMASK23  0x00800000u
#define FUT_KEYMASK24  0x01000000u
#define FUT_KEYMASK25  0x02000000u
#define FUT_KEYMASK26  0x04000000u
#define FUT_KEYMASK27  0x08000000u
#define FUT_KEYMASK28  0x10000000u
#define FUT_KEYMASK29  0x20000000u
#define FUT_KEYMASK30  0x40000000u
#define FUT_KEYMASK31  0x80000000u
#define FUT_KEYMASKALL 0xffffffffu

/* The key of functions built with -finstrument-functions. */
#define FUT_GCC_INSTRUMENT_KEYMASK FUT_KEYMASK29

/*
 * The largest code of an event; codes begin at 1. fut_declare refuses other codes. A probe does not test its code, and
 * records only these 28 bits of it: FUT_PROBE0(k, 0x10000055) records the event 0x55. These codes are libfut's own:
 */
#define FUT_MAX_CODE 0x0fffffffu
#define FUT_SETUP_CODE                0xffffu
#define FUT_GCC_INSTRUMENT_ENTRY_CODE 0x320u
#define FUT_GCC_INSTRUMENT_EXIT_CODE  0x420u
#define FUT_PROF_IN_CODE              0x321u
#define FUT_PROF_OUT_CODE             0x421u

/*
 * Starts recording. `longs`: words of 8 bytes in the buffer of each LWP, 0 for 4 MiB; a power of two of packets of 64
 * KiB is used. `keymask`: the keys that are on; if FUT_KEYMASK or FUT_KEYMASK_FILE is set in the environment, that is
 * used instead. `thread` is ignored. Returns 0, or a negative error number. Possible once per process.
 */
int64_t fut_setup(uint64_t longs, unsigned int keymask, unsigned int thread);

/*
 * Sets the name of the trace; call it before fut_setup. A relative name is that of the folder in which fut_setup is
 * called. An existing file is replaced when recording begins; a fut_setup that fails leaves it as it is. In a child
 * made by fork it sets the name for the child's own recording; without it, fut_setup in the child returns -EBUSY if
 * its parent has recorded to that file.
 */
void fut_set_filename(const char *filename);

/*
 * Changes the keys that are on: `how` is one of the three above. Returns 0 or a negative error number (not recording,
 * or invalid `how`). Takes a lock; not for signal handlers, like fut_setup and fut_endup.
 */
int fut_keychange(int how, unsigned int keymask, unsigned int thread);

/*
 * Ends recording. If `filename` is not NULL, the trace is moved there; a file that it replaces is kept if that fails.
 * Then another call can move the trace to another place. Returns 0 or a negative error number. Called automatically at
 * a normal end of the program.
 */
int64_t fut_endup(const char *filename);
int fut_done(void);

/*
 * Events dropped before recording began (counting stops at 65536). Records lost, known after fut_endup, also if it
 * returns an error: in full buffers, of threads without a buffer, and those that could not be written to the file.
 */
uint64_t fut_dropped_before_setup(void);
uint64_t fut_lost(void);

/* Traces are written while the program runs; kept for programs written for FxT. */
static inline void enable_fut_flush(void) {}
static inline void disable_fut_flush(void) {}

/* The clock of the probes, in ticks. */
uint64_t fut_getstamp(void);

/* Records the addresses of newly loaded code: after dlopen, if the program may be killed. A normal end does it, too. */
void fut_note_modules(void);

/*
 * Declares name, fields and format of the event `code`, at any time. `fields` are "name:type" separated by blanks;
 * types: u8, u16, u32, u64, i64, f64, bool, pointer, text, thread. `format` may be NULL:
 *
 *     fut_declare(0x101, "received", "len:u64 from:text", "{len} bytes from {from}");
 *
 * Returns 0, or a negative error number after printing the reason on stderr: a code out of bounds, an invalid field, a
 * name of the library's own events (USER_CONTEXT_SWITCH, LWP_ATTACH, SPAN_BEGIN, FUNC_ENTER and the like), or a
 * different declaration of the same code. Undeclared events are shown as `undeclared code=…`. If a probe has a text
 * where none is declared, or none where one is, its numbers are those of the fields that are not texts, in their order;
 * `losses` has a note. Numbers without a field come last.
 */
#define fut_declare(code, name, fields, format) fut_declare_at((code), (name), (fields), (format), __FILE__, __LINE__)
int fut_declare_at(uint32_t code, const char *name, const char *fields, const char *format, const char *file,
                   uint32_t line);

/* Called by the macros. */
void fut_probe0(uint32_t code);
void fut_probe1(uint32_t code, uint64_t);
void fut_probe2(uint32_t code, uint64_t, uint64_t);
void fut_probe3(uint32_t code, uint64_t, uint64_t, uint64_t);
void fut_probe4(uint32_t code, uint64_t, uint64_t, uint64_t, uint64_t);
void fut_probe5(uint32_t code, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
void fut_probe6(uint32_t code, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
void fut_probe7(uint32_t code, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
void fut_probe8(uint32_t code, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
void fut_probe0str(uint32_t code, const char *text);
void fut_probe1str(uint32_t code, uint64_t, const char *text);
void fut_probe2str(uint32_t code, uint64_t, uint64_t, const char *text);
void fut_probe3str(uint32_t code, uint64_t, uint64_t, uint64_t, const char *text);
void fut_probe4str(uint32_t code, uint64_t, uint64_t, uint64_t, uint64_t, const char *text);
void fut_probe5str(uint32_t code, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, const char *text);
void fut_probe6str(uint32_t code, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, const char *text);
void fut_prof_in(const void *inside);
void fut_prof_out(const void *inside);

/* The key mask, changed while the program runs. The keys of C are its upper half. */
extern const volatile uint64_t fut_keys;
#if defined(__GNUC__) && defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef uint32_t __attribute__((__may_alias__)) fut_half;
#define fut_active (((const volatile fut_half *)&fut_keys)[1])
#else
#define fut_active ((uint32_t)(fut_keys >> 32))
#endif

#ifdef FUT_NO_PROBES
#define FUT_IF(KEYMASK, CALL) do { if (0) CALL; } while (0)
#elif defined(__GNUC__)
#define FUT_IF(KEYMASK, CALL) do { if (__builtin_expect((fut_active & (KEYMASK)) != 0, 0)) CALL; } while (0)
#else
#define FUT_IF(KEYMASK, CALL) do { if (fut_active & (KEYMASK)) CALL; } while (0)
#endif

#define FUT_WORD(P) ((uint64_t)(P))

/* Records the event CODE with 0 to 8 parameters, integers or pointers, if one of the keys is on. */
#define FUT_PROBE0(KEYMASK, CODE) FUT_IF(KEYMASK, fut_probe0((CODE)))
#define FUT_PROBE1(KEYMASK, CODE, P1) FUT_IF(KEYMASK, fut_probe1((CODE), FUT_WORD(P1)))
#define FUT_PROBE2(KEYMASK, CODE, P1, P2) FUT_IF(KEYMASK, fut_probe2((CODE), FUT_WORD(P1), FUT_WORD(P2)))
#define FUT_PROBE3(KEYMASK, CODE, P1, P2, P3) FUT_IF(KEYMASK, fut_probe3((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3)))
#define FUT_PROBE4(KEYMASK, CODE, P1, P2, P3, P4) FUT_IF(KEYMASK, fut_probe4((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3), FUT_WORD(P4)))
#define FUT_PROBE5(KEYMASK, CODE, P1, P2, P3, P4, P5) FUT_IF(KEYMASK, fut_probe5((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3), FUT_WORD(P4), FUT_WORD(P5)))
#define FUT_PROBE6(KEYMASK, CODE, P1, P2, P3, P4, P5, P6) FUT_IF(KEYMASK, fut_probe6((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3), FUT_WORD(P4), FUT_WORD(P5), FUT_WORD(P6)))
#define FUT_PROBE7(KEYMASK, CODE, P1, P2, P3, P4, P5, P6, P7) FUT_IF(KEYMASK, fut_probe7((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3), FUT_WORD(P4), FUT_WORD(P5), FUT_WORD(P6), FUT_WORD(P7)))
#define FUT_PROBE8(KEYMASK, CODE, P1, P2, P3, P4, P5, P6, P7, P8) FUT_IF(KEYMASK, fut_probe8((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3), FUT_WORD(P4), FUT_WORD(P5), FUT_WORD(P6), FUT_WORD(P7), FUT_WORD(P8)))

#define FUT_DO_PROBE0(CODE) FUT_PROBE0(FUT_KEYMASKALL, CODE)
#define FUT_DO_PROBE1(CODE, P1) FUT_PROBE1(FUT_KEYMASKALL, CODE, P1)
#define FUT_DO_PROBE2(CODE, P1, P2) FUT_PROBE2(FUT_KEYMASKALL, CODE, P1, P2)
#define FUT_DO_PROBE3(CODE, P1, P2, P3) FUT_PROBE3(FUT_KEYMASKALL, CODE, P1, P2, P3)
#define FUT_DO_PROBE4(CODE, P1, P2, P3, P4) FUT_PROBE4(FUT_KEYMASKALL, CODE, P1, P2, P3, P4)
#define FUT_DO_PROBE5(CODE, P1, P2, P3, P4, P5) FUT_PROBE5(FUT_KEYMASKALL, CODE, P1, P2, P3, P4, P5)
#define FUT_DO_PROBE6(CODE, P1, P2, P3, P4, P5, P6) FUT_PROBE6(FUT_KEYMASKALL, CODE, P1, P2, P3, P4, P5, P6)
#define FUT_DO_PROBE7(CODE, P1, P2, P3, P4, P5, P6, P7) FUT_PROBE7(FUT_KEYMASKALL, CODE, P1, P2, P3, P4, P5, P6, P7)
#define FUT_DO_PROBE8(CODE, P1, P2, P3, P4, P5, P6, P7, P8) FUT_PROBE8(FUT_KEYMASKALL, CODE, P1, P2, P3, P4, P5, P6, P7, P8)

/* Any number of parameters up to 8. */
#define FUT_PROBE(...) FUT_PROBE_OF(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0, )(__VA_ARGS__)
#define FUT_PROBE_OF(KEYMASK, CODE, P1, P2, P3, P4, P5, P6, P7, P8, N, ...) FUT_PROBE_N(N)
#define FUT_PROBE_N(N) FUT_PROBE##N

/* The same with a text after the parameters. At most 512 bytes are kept; a truncated text ends with U+2026 (...). */
#define FUT_PROBESTR(KEYMASK, CODE, S) FUT_IF(KEYMASK, fut_probe0str((CODE), (S)))
#define FUT_PROBE1STR(KEYMASK, CODE, P1, S) FUT_IF(KEYMASK, fut_probe1str((CODE), FUT_WORD(P1), (S)))
#define FUT_PROBE2STR(KEYMASK, CODE, P1, P2, S) FUT_IF(KEYMASK, fut_probe2str((CODE), FUT_WORD(P1), FUT_WORD(P2), (S)))
#define FUT_PROBE3STR(KEYMASK, CODE, P1, P2, P3, S) FUT_IF(KEYMASK, fut_probe3str((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3), (S)))
#define FUT_PROBE4STR(KEYMASK, CODE, P1, P2, P3, P4, S) FUT_IF(KEYMASK, fut_probe4str((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3), FUT_WORD(P4), (S)))
#define FUT_PROBE5STR(KEYMASK, CODE, P1, P2, P3, P4, P5, S) FUT_IF(KEYMASK, fut_probe5str((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3), FUT_WORD(P4), FUT_WORD(P5), (S)))
#define FUT_PROBE6STR(KEYMASK, CODE, P1, P2, P3, P4, P5, P6, S) FUT_IF(KEYMASK, fut_probe6str((CODE), FUT_WORD(P1), FUT_WORD(P2), FUT_WORD(P3), FUT_WORD(P4), FUT_WORD(P5), FUT_WORD(P6), (S)))
#define FUT_DO_PROBESTR(CODE, S) FUT_PROBESTR(FUT_KEYMASKALL, CODE, S)

/* For the beginning of a function, and before each return: record PROF_IN and PROF_OUT, with its name and line. */
#define PROF_IN() FUT_IF(FUT_KEYMASKALL, fut_prof_in(FUT_HERE()))
#define PROF_OUT() FUT_IF(FUT_KEYMASKALL, fut_prof_out(FUT_HERE()))

/* An address in this function. */
#if defined(__GNUC__) && defined(__x86_64__)
#define FUT_HERE() (__extension__({ const void *fut_here; __asm__ volatile("lea 0(%%rip), %0" : "=r"(fut_here)); fut_here; }))
#elif defined(__GNUC__) && defined(__aarch64__)
#define FUT_HERE() (__extension__({ const void *fut_here; __asm__ volatile("adr %0, ." : "=r"(fut_here)); fut_here; }))
#else
#define FUT_HERE() (__extension__({ __label__ fut_here; fut_here: &&fut_here; }))
#endif

#ifdef __cplusplus
}
#endif

#endif
