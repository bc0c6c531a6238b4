/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a backend in C or C++ needs. There is nothing to link: define trts_backend_main, build a
 * shared library libtrtserver_<name>.so, and put it into the server's backend directory. */
#ifndef TRTSERVER_TRTSERVER_H
#define TRTSERVER_TRTSERVER_H

#include "types.h"
#include "request.h"
#include "descriptors.h"
#include "host.h"
#include "backend.h"
#include "extensions.h"
#include "inference.h"

#endif
