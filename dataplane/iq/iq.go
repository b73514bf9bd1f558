// SPDX-License-Identifier: Apache-2.0

// Package iq has the header of libdray_iq, for what is built while an image is.
package iq

import _ "embed"

// HeaderName is the header's file name, and Header its text.
const HeaderName = "dray_iq.h"

//go:embed include/dray_iq.h
var Header []byte
