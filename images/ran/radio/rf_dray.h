/* SPDX-License-Identifier: Apache-2.0 */
/*
 * srsRAN 4G's radio "zmq" on Drayage ports. rf_zmq_imp.c of srsRAN has rates, decimation, gains and
 * time, and is compiled as it is. rf_dray_tx.c and rf_dray_rx.c take the place of its
 * rf_zmq_imp_tx.c and rf_zmq_imp_rx.c, and zmq.h that of ZeroMQ's header. tx_port and rx_port are
 * names of native ports whose links have `messages`. A message is a subframe, unless the link's
 * messages are smaller.
 */
#ifndef RF_DRAY_H
#define RF_DRAY_H

#include <dray_iq.h>
#include <srsran/config.h>

#include "rf_zmq_imp_trx.h"

/* What the senders and receivers of a radio share. */
struct rf_dray_context {
	pthread_mutex_t mutex;
	struct dray_iq *sender; /* one of them: all send as much. NULL: none is open */
};

/* A stream as the device arguments want it. NULL: it said why not. */
struct dray_iq *rf_dray_open(const rf_zmq_opts_t *opts, const char *port,
			     enum dray_iq_direction direction);

/* Report an error of a stream, unless it is that the radio closes. Returns SRSRAN_ERROR. */
int rf_dray_failed(const char *what, int error);

static inline bool rf_dray_running(const bool *running)
{
	return __atomic_load_n(running, __ATOMIC_RELAXED);
}

#endif
