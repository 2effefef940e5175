/* loads LIBRARY: calls a function of a library that it loads while it runs. */
#include <dlfcn.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    if (!library)
        return 2;
    int (*plugged)(int) = (int (*)(int))dlsym(library, "plugged");
    return plugged(41) == 42 ? 0 : 3;
}
