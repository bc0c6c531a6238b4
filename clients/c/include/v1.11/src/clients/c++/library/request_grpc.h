// request_grpc.h at its path in the sources of TRTIS 1.11.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "../../../../request_grpc.h"
