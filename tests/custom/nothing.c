/* A shared library that is not a backend. With -DNEEDS_MORE it has an undefined symbol that fails the load. */
int nothing_to_see_here(void);
int nothing_to_see_here(void) { return 0; }

#ifdef NEEDS_MORE
extern int nobody_has_this_number;
int* const number_of_nobody = &nobody_has_this_number;
#endif
