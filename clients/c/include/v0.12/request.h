// All contexts of the v1 C++ client, at the place of TRTIS 0.12's header.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "../trtserver_client/v1/grpc.h"
#include "../trtserver_client/v1/http.h"
