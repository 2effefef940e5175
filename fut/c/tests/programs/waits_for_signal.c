/* waits_for_signal [TRACE]: all threads block SIGTERM, and main waits for it. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <fut.h>

int main(int argc, char **argv)
{
    if (argc > 1) {
        fut_set_filename(argv[1]);
        if (fut_setup(0, FUT_KEYMASKALL, 0) != 0)
            return 2;
    }
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, 0);
    FUT_PROBE0(FUT_KEYMASK0, 1);
    kill(getpid(), SIGTERM);
    int signal = 0;
    sigwait(&term, &signal);
    printf("signal %d\n", signal);
    return 0;
}
