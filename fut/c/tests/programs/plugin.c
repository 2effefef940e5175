/* A library that is loaded late. */
int plugged(int n);

int plugged(int n)
{
    return n + 1;
}
