/* Declares one event twice, differently, and others wrongly. Prints what each attempt returned. */
#include <stdio.h>

#include <fut.h>

int main(void)
{
    int first = fut_declare(0x10, "message", "len:u64 from:text", "{len} bytes from {from}");
    int same = fut_declare(0x10, "message", "len:u64, from:string", "{len} bytes from {from}");
    int other = fut_declare(0x10, "message", "len:u64", NULL);
    int no_type = fut_declare(0x11, "message", "len:u65", NULL);
    int no_field = fut_declare(0x11, "message", "len", NULL);
    int no_name = fut_declare(0x11, "", "", NULL);
    int no_code = fut_declare(FUT_MAX_CODE + 1, "message", "", NULL);
    printf("%d %d %d %d %d %d %d\n", first, same, other, no_type, no_field, no_name, no_code);
    return 0;
}
