/* Everything that a plugin in C or C++ needs. Nothing to link: define trts_plugin_main, build a shared
 * library libtrtserver_<name>.so, and put it into the server's backend directory. */
#ifndef TRTSERVER_TRTSERVER_H
#define TRTSERVER_TRTSERVER_H

#include "types.h"
#include "call.h"
#include "describe.h"
#include "host.h"
#include "plugin.h"

#endif
