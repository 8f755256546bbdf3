/* The fusion of both legs. */

#include "kernels.h"

#include <stdlib.h>
#include <string.h>

/* Sort `order` by descending key, equal keys as they stand; `spare` has room for as many. */
static void sort_stably(Py_ssize_t *order, Py_ssize_t n, const double *keys, Py_ssize_t *spare)
{
    if (n < 2)
        return;
    if (n <= 24) {
        for (Py_ssize_t i = 1, at; i < n; i++) {
            Py_ssize_t item = order[i];
            for (at = i; at > 0 && keys[order[at - 1]] < keys[item]; at--)
                order[at] = order[at - 1];
            order[at] = item;
        }
        return;
    }
    Py_ssize_t half = n / 2, left = 0, right = half, at = 0;
    sort_stably(order, half, keys, spare);
    sort_stably(order + half, n - half, keys, spare);
    memcpy(spare, order, (size_t)half * sizeof *order);
    while (left < half && right < n) { /* without a branch on the keys, which none could guess */
        Py_ssize_t item = spare[left], other = order[right];
        int precedes = keys[other] > keys[item];
        order[at++] = precedes ? other : item;
        right += precedes;
        left += !precedes;
    }
    memcpy(order + at, spare + left, (size_t)(half - left) * sizeof *order);
}

/* One leg of a pool. */
typedef struct {
    const double *scores;
    double *part; /* before weighting, in [0, 1] */
    Py_ssize_t *order, *rank;
} Leg;

static void weigh_leg(const Leg *leg, Py_ssize_t n, Py_ssize_t *spare, double eps, double rrf_k,
                      int all)
{
    for (Py_ssize_t i = 0; i < n; i++)
        leg->order[i] = i;
    sort_stably(leg->order, n, leg->scores, spare);
    double lowest = leg->scores[leg->order[n - 1]], highest = leg->scores[leg->order[0]];
    for (Py_ssize_t rank = 0; rank < n; rank++) {
        Py_ssize_t i = leg->order[rank];
        leg->rank[i] = rank;
        if (rrf_k == 0.0)
            leg->part[i] = (leg->scores[i] - lowest) / (highest - lowest + eps);
        else
            leg->part[i] = (rrf_k + 1) / (rrf_k + 1 + (double)rank);
        if (rrf_k != 0.0 && !all && !(leg->scores[i] > lowest))
            leg->part[i] = 0.0;
    }
}

static PyObject *list_of(const double *values, const Py_ssize_t *numbers, const Py_ssize_t *order,
                         Py_ssize_t k)
{
    PyObject *list = PyList_New(k);
    for (Py_ssize_t i = 0; list && i < k; i++) {
        PyObject *item = values ? PyFloat_FromDouble(values[order[i]])
                                : PyLong_FromSsize_t(numbers[order[i]]);
        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *rank(PyObject *module, PyObject *args)
{
    PyObject *dense_array, *sparse_array, *row_array, *lists[8], *ranking = NULL;
    Py_buffer dense, sparse = {0}, rows = {0};
    double weight, eps, rrf_k, *parts = NULL;
    Py_ssize_t k, *places = NULL;
    if (!PyArg_ParseTuple(args, "OOOdndd", &dense_array, &sparse_array, &row_array, &weight, &k,
                          &eps, &rrf_k) ||
        check_k(k) < 0)
        return NULL;
    if (borrow(dense_array, &dense, "dense", "d", 8) < 0)
        return NULL;
    if (borrow(sparse_array, &sparse, "sparse", "d", 8) < 0 ||
        borrow(row_array, &rows, "rows", "lq", 8) < 0)
        goto done;
    Py_ssize_t n = length(&dense);
    if (n < 1 || length(&sparse) != n || length(&rows) != n) {
        PyErr_SetString(PyExc_ValueError, "dense, sparse and rows do not fit each other");
        goto done;
    }
    k = k < n ? k : n;
    parts = malloc((size_t)n * 3 * sizeof *parts);
    places = malloc((size_t)n * 6 * sizeof *places);
    if (!parts || !places) {
        PyErr_NoMemory();
        goto done;
    }
    Leg by_meaning = {dense.buf, parts, places, places + n};
    Leg by_words = {sparse.buf, parts + n, places + 2 * n, places + 3 * n};
    double *scores = parts + 2 * n;
    Py_ssize_t *order = places + 4 * n, *spare = places + 5 * n;
    weigh_leg(&by_meaning, n, spare, eps, rrf_k, 1);
    weigh_leg(&by_words, n, spare, eps, rrf_k, 0);
    for (Py_ssize_t i = 0; i < n; i++) {
        scores[i] = weight * by_meaning.part[i] + (1 - weight) * by_words.part[i];
        order[i] = by_meaning.order[i];
    }
    sort_stably(order, n, scores, spare);
    lists[0] = list_of(NULL, rows.buf, order, k);
    lists[1] = list_of(scores, NULL, order, k);
    lists[2] = list_of(by_meaning.scores, NULL, order, k);
    lists[3] = list_of(by_words.scores, NULL, order, k);
    lists[4] = list_of(by_meaning.part, NULL, order, k);
    lists[5] = list_of(by_words.part, NULL, order, k);
    lists[6] = list_of(NULL, by_meaning.rank, order, k);
    lists[7] = list_of(NULL, by_words.rank, order, k);
    ranking = PyTuple_New(8);
    for (Py_ssize_t i = 0; i < 8; i++)
        if (!ranking || !lists[i]) {
            Py_XDECREF(lists[i]);
            Py_CLEAR(ranking);
        } else if (PyTuple_SetItem(ranking, i, lists[i]) < 0)
            Py_CLEAR(ranking);
done:
    free(places);
    free(parts);
    give_back(&rows);
    give_back(&sparse);
    give_back(&dense);
    return ranking;
}
