/* SPDX-License-Identifier: Apache-2.0 */
/* Options that need no translation but of their number. */
#ifndef DRAY_SCTP_OPTIONS_H
#define DRAY_SCTP_OPTIONS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "kernel.h"

/*
 * usrsctp's number of an option whose value has the same form in Linux; 0: it has not. `write`:
 * for setsockopt, which has some that getsockopt has not, and the other way round.
 */
int option_number(int option, bool write);

#endif
