/* A library that lacks something. */
#ifdef INITIALIZE
int CustomInitialize(void) { return 0; }
#endif
#ifdef VERSION
unsigned CustomVersion(void) { return VERSION; }
#endif
extern int nothing;
