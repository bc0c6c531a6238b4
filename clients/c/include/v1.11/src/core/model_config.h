// model_config.h at its path in the sources of TRTIS.
//
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "../../../trtserver_client/v1/model_config.h"
