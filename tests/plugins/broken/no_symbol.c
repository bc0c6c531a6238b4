/* A shared library that is not a plugin: it has no entry symbol. */
int not_the_symbol_you_look_for(void) { return 0; }
