/* A library that a backend brings along, in several versions of one SONAME. */
int dep(void);
int dep(void) { return NUMBER; }
