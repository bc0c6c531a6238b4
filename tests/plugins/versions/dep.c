/* A private dependency of a test backend, in several versions of one SONAME. */
int dep(void);
int dep(void) { return NUMBER; }
