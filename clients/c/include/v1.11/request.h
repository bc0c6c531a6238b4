// Contexts of the v1 C++ client, at the place of TRTIS 1.11's header.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "../trtserver_client/v1/infer.h"
#include "../trtserver_client/v1/server.h"
