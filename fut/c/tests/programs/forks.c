/* forks TRACE: parent and child both end normally; the trace is the parent's. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fut.h>

int main(int argc, char **argv)
{
    fut_declare(1, "here", "who:u64", NULL);
    fut_set_filename(argv[argc - 1]);
    if (fut_setup(0, FUT_KEYMASKALL, 0) != 0)
        return 2;
    FUT_PROBE1(FUT_KEYMASK0, 1, 1);
    pid_t child = fork();
    FUT_PROBE1(FUT_KEYMASK0, 1, child == 0 ? 2 : 3);
    if (child == 0)
        exit(fut_keychange(FUT_ENABLE, FUT_KEYMASKALL, 0) == 0);
    int status = 0;
    waitpid(child, &status, 0);
    FUT_PROBE1(FUT_KEYMASK0, 1, 4);
    return status;
}
