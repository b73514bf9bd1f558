/* SPDX-License-Identifier: Apache-2.0 */
/* The second half of reading the command line. */
#ifndef GEN_OPTIONS_CHECK_H
#define GEN_OPTIONS_CHECK_H

#include "options.h"

/* Report on stderr what is wrong with the command line. Returns -1. */
__attribute__((format(printf, 1, 2))) int options_wrong(const char *format, ...);

/* All options are read; `usual` has the defaults. Returns 0 or -1. */
int options_check(struct options *options, const struct options *usual);

#endif
