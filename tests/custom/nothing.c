/* A shared library that is no backend at all. */
int nothing_to_see_here(void);
int nothing_to_see_here(void) { return 0; }
