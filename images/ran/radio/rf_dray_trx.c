/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sender and receiver of srsRAN 4G's radio "zmq" on Drayage ports, in place of rf_zmq_imp_tx.c and
 * rf_zmq_imp_rx.c: tx_port and rx_port are names of native ports whose links have `messages`. One
 * message is a subframe, unless the link's messages are smaller.
 *
 * rf_zmq_imp.c has rates, decimation, gains and time. It hands a buffer to each call, which it
 * scales in place: so the receiver copies once out of shared memory, and cannot show it to srsRAN.
 * There is no thread and no ring in between, unlike with ZeroMQ.
 */
#include "rf_zmq_imp_trx.h"

#include <dray_iq.h>
#include <errno.h>
#include <srsran/config.h>
#include <srsran/phy/common/phy_common.h>
#include <srsran/phy/utils/vector.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#undef usleep

/*
 * srsRAN's radio sleeps for as long as a subframe lasts, and then computes: it is always slower than
 * real time. Without that, it is as fast as the machine.
 */
int rf_dray_pause(useconds_t us)
{
	const char *unpaced = getenv("DRAY_RF_UNPACED");

	return unpaced && strcmp(unpaced, "1") == 0 ? 0 : usleep(us);
}

static bool usable(const rf_zmq_opts_t *opts)
{
	bool plain = opts->socket_type == ZMQ_REQ || opts->socket_type == ZMQ_REP;

	if (!plain || opts->sample_format != ZMQ_TYPE_FC32)
		fprintf(stderr, "[dray] Error: a Drayage port has neither types nor formats: remove "
				"tx_type, rx_type, tx_format and rx_format from device_args\n");
	return plain && opts->sample_format == ZMQ_TYPE_FC32;
}

static struct dray_iq *open_stream(const rf_zmq_opts_t *opts, const char *port,
				   enum dray_iq_direction direction)
{
	struct dray_iq *stream;
	int ret;

	if (!usable(opts))
		return NULL;
	ret = dray_iq_open(port, direction, NULL, &stream);
	if (ret) {
		fprintf(stderr, "[dray] Error: port %s: %s\n", port, dray_iq_strerror(ret));
		return NULL;
	}
	return stream;
}

static int failed(const char *what, int error)
{
	if (error != -ECANCELED)
		fprintf(stderr, "[dray] Error: %s: %s\n", what, dray_iq_strerror(error));
	return SRSRAN_ERROR;
}

static bool is_running(const bool *running)
{
	return __atomic_load_n(running, __ATOMIC_RELAXED);
}

/* End the calls that wait, then wait for them. */
static void close_stream(void **sock, bool *running, pthread_mutex_t *mutex)
{
	if (!*sock)
		return;
	__atomic_store_n(running, false, __ATOMIC_RELAXED);
	dray_iq_stop(*sock);
	pthread_mutex_lock(mutex);
	dray_iq_close(*sock);
	*sock = NULL;
	pthread_mutex_unlock(mutex);
	pthread_mutex_destroy(mutex);
}

int rf_zmq_tx_open(rf_zmq_tx_t *q, rf_zmq_opts_t opts, void *context, char *port)
{
	(void)context;
	memset(q, 0, sizeof(*q));
	snprintf(q->id, sizeof(q->id), "%s", opts.id);
	q->frequency_mhz = opts.frequency_mhz;
	q->sample_offset = opts.sample_offset;
	q->sock = open_stream(&opts, port, DRAY_IQ_SEND);
	if (!q->sock)
		return SRSRAN_ERROR;
	pthread_mutex_init(&q->mutex, NULL);
	q->running = true;
	return SRSRAN_SUCCESS;
}

/* Send samples, or zeros if there is no buffer. The mutex is held. */
static int transmit(rf_zmq_tx_t *q, const cf_t *buffer, uint32_t nsamples)
{
	int ret = q->sock ? dray_iq_send(q->sock, buffer, NSAMPLES2NBYTES(nsamples)) : -ECANCELED;

	if (ret)
		return failed("sending", ret);
	q->nsamples += nsamples;
	return (int)nsamples;
}

/* The device argument tx_offset: send that many zeros first, or leave out as many samples. */
static int transmit_shifted(rf_zmq_tx_t *q, const cf_t *buffer, uint32_t nsamples)
{
	uint32_t left_out = 0;

	if (q->sample_offset > 0) {
		if (transmit(q, NULL, (uint32_t)q->sample_offset) < 0)
			return SRSRAN_ERROR;
		q->sample_offset = 0;
	} else if (q->sample_offset < 0) {
		left_out = SRSRAN_MIN((uint32_t)-q->sample_offset, nsamples);
		q->sample_offset += (int32_t)left_out;
	}
	if (left_out < nsamples && transmit(q, buffer + left_out, nsamples - left_out) < 0)
		return SRSRAN_ERROR;
	return (int)nsamples;
}

int rf_zmq_tx_align(rf_zmq_tx_t *q, uint64_t ts)
{
	int64_t gap;

	pthread_mutex_lock(&q->mutex);
	gap = (int64_t)ts - (int64_t)q->nsamples;
	if (gap > 0)
		(void)transmit(q, NULL, (uint32_t)gap);
	pthread_mutex_unlock(&q->mutex);
	return (int)gap;
}

int rf_zmq_tx_baseband(rf_zmq_tx_t *q, cf_t *buffer, uint32_t nsamples)
{
	int n;

	pthread_mutex_lock(&q->mutex);
	n = transmit_shifted(q, buffer, nsamples);
	pthread_mutex_unlock(&q->mutex);
	return n;
}

int rf_zmq_tx_zeros(rf_zmq_tx_t *q, uint32_t nsamples)
{
	int n;

	pthread_mutex_lock(&q->mutex);
	n = transmit(q, NULL, nsamples);
	pthread_mutex_unlock(&q->mutex);
	return n;
}

int rf_zmq_tx_get_nsamples(rf_zmq_tx_t *q)
{
	int n;

	pthread_mutex_lock(&q->mutex);
	n = (int)q->nsamples;
	pthread_mutex_unlock(&q->mutex);
	return n;
}

bool rf_zmq_tx_match_freq(rf_zmq_tx_t *q, uint32_t freq_hz)
{
	return q && (q->frequency_mhz == 0 || q->frequency_mhz == freq_hz);
}

bool rf_zmq_tx_is_running(rf_zmq_tx_t *q)
{
	return q && is_running(&q->running);
}

void rf_zmq_tx_close(rf_zmq_tx_t *q)
{
	close_stream(&q->sock, &q->running, &q->mutex);
}

int rf_zmq_rx_open(rf_zmq_rx_t *q, rf_zmq_opts_t opts, void *context, char *port)
{
	(void)context;
	memset(q, 0, sizeof(*q));
	snprintf(q->id, sizeof(q->id), "%s", opts.id);
	q->frequency_mhz = opts.frequency_mhz;
	q->fail_on_disconnect = opts.fail_on_disconnect;
	q->sample_offset = opts.sample_offset;
	q->trx_timeout_ms = opts.trx_timeout_ms;
	q->log_trx_timeout = opts.log_trx_timeout;
	q->sock = open_stream(&opts, port, DRAY_IQ_RECEIVE);
	if (!q->sock)
		return SRSRAN_ERROR;
	pthread_mutex_init(&q->mutex, NULL);
	q->running = true;
	return SRSRAN_SUCCESS;
}

/*
 * Fill the buffer. If the time is over in the middle of that, it waits on: what came belongs into
 * this buffer, and the peer is about to send the rest.
 *
 * After a gap the buffer is filled with zeros, although the next samples are there: the peer is a new
 * one, and has not got what this side sent last. Both sides send before they receive. Had this side
 * no subframe to go on with, each might wait for the other.
 */
static int fill(rf_zmq_rx_t *q, uint8_t *buffer, size_t bytes)
{
	int timeout = q->trx_timeout_ms ? (int)q->trx_timeout_ms : -1;
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = q->sock ? dray_iq_receive(q->sock, buffer + done, bytes - done, timeout)
				    : -ECANCELED;

		if (n == -ECONNRESET) {
			fprintf(stderr, "[dray] %s: the other side of the radio was restarted\n",
				q->id);
			memset(buffer, 0, bytes);
			break;
		}
		if (n < 0)
			return failed("receiving", (int)n);
		done += (size_t)n;
		if (done == 0 || (done < bytes && q->fail_on_disconnect))
			return SRSRAN_ERROR_TIMEOUT;
	}
	return (int)bytes;
}

/* The device argument rx_offset, if it is negative: leave out as many samples. */
static int leave_out(rf_zmq_rx_t *q, cf_t *buffer, uint32_t nsamples)
{
	while (q->sample_offset < 0) {
		uint32_t some = SRSRAN_MIN((uint32_t)-q->sample_offset, nsamples);
		int n = fill(q, (uint8_t *)buffer, NSAMPLES2NBYTES(some));

		if (n < 0)
			return n;
		q->sample_offset += (int32_t)some;
	}
	return SRSRAN_SUCCESS;
}

/* The device argument rx_offset, if it is positive: zeros come first. Returns how many samples. */
static uint32_t put_zeros(rf_zmq_rx_t *q, cf_t *buffer, uint32_t nsamples)
{
	uint32_t some = SRSRAN_MIN((uint32_t)q->sample_offset, nsamples);

	memset(buffer, 0, NSAMPLES2NBYTES(some));
	return some;
}

static int receive(rf_zmq_rx_t *q, cf_t *buffer, uint32_t nsamples)
{
	int n = leave_out(q, buffer, nsamples);
	uint32_t zeros;

	if (n < 0)
		return n;
	zeros = put_zeros(q, buffer, nsamples);
	n = fill(q, (uint8_t *)(buffer + zeros), NSAMPLES2NBYTES(nsamples - zeros));
	if (n < 0)
		return n;
	q->sample_offset -= (int32_t)zeros;
	return (int)NSAMPLES2NBYTES(nsamples);
}

/* Returns bytes, as srsRAN's own receiver does. */
int rf_zmq_rx_baseband(rf_zmq_rx_t *q, cf_t *buffer, uint32_t nsamples)
{
	int n;

	pthread_mutex_lock(&q->mutex);
	n = receive(q, buffer, nsamples);
	pthread_mutex_unlock(&q->mutex);
	return n;
}

bool rf_zmq_rx_match_freq(rf_zmq_rx_t *q, uint32_t freq_hz)
{
	return q && (q->frequency_mhz == 0 || q->frequency_mhz == freq_hz);
}

bool rf_zmq_rx_is_running(rf_zmq_rx_t *q)
{
	return q && is_running(&q->running);
}

void rf_zmq_rx_close(rf_zmq_rx_t *q)
{
	close_stream(&q->sock, &q->running, &q->mutex);
}
