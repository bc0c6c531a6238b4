/* Has the symbol, and refuses to give a table. */
#include <trtserver/trtserver.h>

const trts_backend_table *trts_backend_main(const trts_host_table *host) { return (void)host, NULL; }
