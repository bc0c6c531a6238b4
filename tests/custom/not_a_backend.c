/* A shared library that is not a backend. With -DNEEDS_MORE it has an undefined symbol that fails the load. */
int unrelated_function(void);
int unrelated_function(void) { return 0; }

#ifdef NEEDS_MORE
extern int undefined_number;
int* const pointer_to_undefined = &undefined_number;
#endif
