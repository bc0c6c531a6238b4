/* A shared library that is no backend at all. With -DNEEDS_MORE it lacks something that the loader must find at once. */
int nothing_to_see_here(void);
int nothing_to_see_here(void) { return 0; }

#ifdef NEEDS_MORE
extern int nobody_has_this_number;
int* const number_of_nobody = &nobody_has_this_number;
#endif
