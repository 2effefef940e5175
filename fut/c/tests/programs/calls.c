/* calls CALL…: executes these calls in their order, and prints the results of some. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fut.h>

int main(int argc, char **argv)
{
    fut_declare(1, "here", "number:u64", NULL);
    for (int i = 1; i < argc; i++) {
        char *call = argv[i], *of = strchr(call, ':');
        if (of)
            *of++ = 0;
        if (!strcmp(call, "name"))
            fut_set_filename(of);
        else if (!strcmp(call, "setup"))
            printf("setup %d\n", (int)fut_setup(of ? (uint64_t)atol(of) : 1 << 14, FUT_KEYMASKALL, 0));
        else if (!strcmp(call, "probe"))
            FUT_PROBE1(FUT_KEYMASK0, 1, atoi(of));
        else if (!strcmp(call, "probes"))
            for (int n = atoi(of); n > 0; n--)
                FUT_PROBE1(FUT_KEYMASK0, 1, n);
        else if (!strcmp(call, "endup"))
            printf("endup %d\n", (int)fut_endup(of));
        else if (!strcmp(call, "lost"))
            printf("lost %llu\n", (unsigned long long)fut_lost());
        else if (!strcmp(call, "chdir"))
            printf("chdir %d\n", chdir(of));
        else if (!strcmp(call, "shell")) {
            if (system(of) != 0)
                return 3;
        } else if (!strcmp(call, "address-space") || !strcmp(call, "file-size")) {
            /* No more than so many bytes; 0: no limit. */
            int what = *call == 'a' ? RLIMIT_AS : RLIMIT_FSIZE;
            struct rlimit limit = {atol(of) ? (rlim_t)atol(of) : RLIM_INFINITY, RLIM_INFINITY};
            setrlimit(what, &limit);
        } else if (!strcmp(call, "fork")) {
            /* The child executes the calls up to `parent`, the parent those after it. */
            fflush(stdout);
            pid_t child = fork();
            if (child) {
                waitpid(child, NULL, 0);
                while (strcmp(argv[++i], "parent"))
                    ;
            }
        } else if (!strcmp(call, "parent"))
            exit(0);
        else
            return 2;
    }
    return 0;
}
