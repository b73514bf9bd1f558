/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for ZeroMQ's header while rf_zmq_imp.c of srsRAN 4G is compiled: what that file uses of
 * it besides its sender and receiver, which are in rf_dray_trx.c. Nothing of ZeroMQ is linked.
 */
#ifndef DRAY_RADIO_ZMQ_H
#define DRAY_RADIO_ZMQ_H

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { ZMQ_SUB, ZMQ_PUB, ZMQ_REQ, ZMQ_REP };

/* An error that never occurs. */
#define EFSM (-1)
#define zmq_errno() errno
#define zmq_strerror(error) strerror(error)

/* There is no context, but it must not be NULL. */
#define zmq_ctx_new() ((void *)"")
#define zmq_ctx_destroy(context) ((void)(context))

/* The pause of each subframe. */
int rf_dray_pause(useconds_t us);
#define usleep rf_dray_pause

#endif
