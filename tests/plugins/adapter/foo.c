/* A library of another server, for adapter.c: its number. */
float foo_number(void);
float foo_number(void) { return NUMBER; }
