/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for ZeroMQ's header while rf_zmq_imp.c of srsRAN 4G is compiled: what that file uses of
 * it. Nothing of ZeroMQ is linked.
 */
#ifndef RF_DRAY_ZMQ_H
#define RF_DRAY_ZMQ_H

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { ZMQ_SUB, ZMQ_PUB, ZMQ_REQ, ZMQ_REP };

/* An error that never occurs. */
#define EFSM (-1)
#define zmq_errno() errno
#define zmq_strerror(error) strerror(error)

void *rf_dray_context_new(void);
void rf_dray_context_free(void *context);
#define zmq_ctx_new rf_dray_context_new
#define zmq_ctx_destroy rf_dray_context_free

/* The pause of each subframe. */
int rf_dray_pause(useconds_t us);
#define usleep rf_dray_pause

#endif
