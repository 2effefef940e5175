/* Loads a trace.dat with libkshark, as KernelShark does, and prints the number of entries: a peer of `ingest`.
 *
 * Declares what it uses, so that the library alone is enough (Debian: libkshark2) and its headers, which need those
 * of json-c and libtracecmd, are not.
 *
 *	cc -O2 -o kshark kshark.c -l:libkshark.so.2
 */
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct kshark_context;
struct kshark_entry;

bool kshark_instance(struct kshark_context **context);
int kshark_open(struct kshark_context *context, const char *file);
ssize_t kshark_load_entries(struct kshark_context *context, int stream, struct kshark_entry ***rows);

int main(int argc, char **argv)
{
	struct kshark_context *context = NULL;
	struct kshark_entry **rows = NULL;
	ssize_t entries;
	int stream;

	if (argc != 2 || !kshark_instance(&context))
		return 2;
	stream = kshark_open(context, argv[1]);
	if (stream < 0)
		return 1;
	entries = kshark_load_entries(context, stream, &rows);
	printf("%zd\n", entries);
	return entries < 0;
}
