/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that sends what is due while the application does not call. */
#ifndef DRAY_PACER_H
#define DRAY_PACER_H

#include "egress.h"

/* The lock, and what the thread sleeps on. Error: -errno. */
int pacer_init(struct egress *e);
void pacer_destroy(struct egress *e);

int pacer_start(struct egress *e);
void pacer_stop(struct egress *e);

#endif
