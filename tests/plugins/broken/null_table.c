/* Has the symbol, and refuses to give a table. */
#include <trtserver/trtserver.h>

const trts_plugin_table *trts_plugin_main(const trts_host *host) { return (void)host, NULL; }
