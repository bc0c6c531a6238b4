// Contexts of the v1 C++ client over HTTP, at the place of TRTIS 1.11's header.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "request.h"
#include "../trtserver_client/v1/http.h"
