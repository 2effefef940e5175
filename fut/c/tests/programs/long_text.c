/* Texts around the longest that a record keeps. */
#include <string.h>

#include <fut.h>

enum { TEXT = 0x101 };

int main(int argc, char **argv)
{
    char text[1001];
    (void)argc;
    fut_set_filename(argv[1]);
    fut_declare(TEXT, "text", "text:text", "{text}");
    if (fut_setup(0, FUT_KEYMASKALL, 0) != 0)
        return 2;
    memset(text, 'a', 511);
    text[511] = 0;
    FUT_PROBESTR(FUT_KEYMASK0, TEXT, text);
    for (int i = 0; i < 500; i++)
        memcpy(text + 2 * i, "\xc3\xa9", 2);
    text[1000] = 0;
    FUT_PROBESTR(FUT_KEYMASK0, TEXT, text);
    return fut_endup(NULL) != 0;
}
