/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that moves what usrsctp received to the application's end of each socket. */
#ifndef DRAY_SCTP_PUMP_H
#define DRAY_SCTP_PUMP_H

#include <stdbool.h>

struct sock;

int pump_start(void);		   /* 0 or -errno */
int pump_add(struct sock *sock);   /* 0 or -errno */
void pump_mark(struct sock *sock); /* it may have something to do */
void pump_plugged(void);	   /* a socket was plugged */
void pump_before_fork(void);
void pump_after_fork(void);

#endif
