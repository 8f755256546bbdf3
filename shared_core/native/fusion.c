/* The best of a pool by the weighted sum of two legs' scaled scores. */

#include "kernels.h"

#include <math.h>
#include <stdlib.h>

#define EPS 1e-7 /* as in scoring/fusion.py */

/* A leg over a pool of n passages. */
typedef struct {
    const double *scores;
    double lowest, highest, width;
} Leg;

/* A passage of the pool. */
typedef struct {
    double score, dense;
    Py_ssize_t place;
} Entry;

/* The better first; of equal ones that with the better dense score. */
static int is_better(Entry one, Entry other)
{
    return one.score > other.score || (one.score == other.score && one.dense > other.dense);
}

/* Put an entry among the best `size`, behind those as good; there is room for one more. */
static void insert(Entry *best, Py_ssize_t size, Entry entry)
{
    for (; size > 0 && is_better(entry, best[size - 1]); size--)
        best[size] = best[size - 1];
    best[size] = entry;
}

/* Find the extremes, with `lowest` as given if it is lower; return whether all scores are finite,
 * and not too far apart to be subtracted. */
static int measure(Leg *leg, Py_ssize_t n)
{
    leg->highest = n ? leg->scores[0] : 0;
    leg->lowest = fmin(leg->lowest, leg->highest);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!isfinite(leg->scores[i]))
            return 0;
        leg->lowest = fmin(leg->lowest, leg->scores[i]);
        leg->highest = fmax(leg->highest, leg->scores[i]);
    }
    leg->width = leg->highest - leg->lowest + EPS;
    return isfinite(leg->width);
}

static double scaled(const Leg *leg, Py_ssize_t at)
{
    return (leg->scores[at] - leg->lowest) / leg->width;
}

/* The rank of a passage by one leg alone: how many are better, or as good and earlier. */
static Py_ssize_t rank_of(const Leg *leg, Py_ssize_t at, Py_ssize_t n)
{
    Py_ssize_t rank = 0;
    double score = leg->scores[at];
    for (Py_ssize_t i = 0; i < at; i++)
        rank += leg->scores[i] >= score;
    for (Py_ssize_t i = at; i < n; i++)
        rank += leg->scores[i] > score;
    return rank;
}

/* A tuple of 8 lists of the best `size` passages; see `ranked` in kernels.py. */
static PyObject *as_lists(const Entry *best, const Leg legs[2], Py_ssize_t size, Py_ssize_t n)
{
    PyObject *lists = PyTuple_New(8);
    for (Py_ssize_t list = 0; lists && list < 8; list++) {
        PyObject *values = PyList_New(size);
        if (!values || PyTuple_SetItem(lists, list, values) < 0)
            Py_CLEAR(lists);
        const Leg *leg = &legs[list % 2];
        for (Py_ssize_t i = 0; lists && i < size; i++) {
            Py_ssize_t at = best[i].place;
            PyObject *value = list == 0   ? PyLong_FromSsize_t(at)
                              : list == 1 ? PyFloat_FromDouble(best[i].score)
                              : list < 4  ? PyFloat_FromDouble(leg->scores[at])
                              : list < 6  ? PyFloat_FromDouble(scaled(leg, at))
                                          : PyLong_FromSsize_t(rank_of(leg, at, n));
            if (!value || PyList_SetItem(values, i, value) < 0)
                Py_CLEAR(lists);
        }
    }
    return lists;
}

PyObject *ranked(PyObject *module, PyObject *args)
{
    PyObject *given[2], *result = NULL;
    Py_buffer views[2] = {{0}, {0}};
    Leg legs[2] = {{0}, {0}};
    double weight;
    Py_ssize_t k;
    if (!PyArg_ParseTuple(args, "OOdn(dd)", &given[0], &given[1], &weight, &k, &legs[0].lowest,
                          &legs[1].lowest))
        return NULL;
    Entry *best = NULL;
    if (borrow(given[0], &views[0], "dense", "d", 8) < 0 ||
        borrow(given[1], &views[1], "sparse", "d", 8) < 0)
        goto end;
    Py_ssize_t n = length(&views[0]);
    if (length(&views[1]) != n) {
        PyErr_Format(PyExc_ValueError, "sparse: expected %zd scores", n);
        goto end;
    }
    k = k < n ? k : n;
    best = malloc((size_t)(k + 1) * sizeof *best);
    if (!best) {
        PyErr_NoMemory();
        goto end;
    }
    for (int i = 0; i < 2; i++)
        legs[i].scores = views[i].buf;
    if (!measure(&legs[0], n) || !measure(&legs[1], n)) {
        result = Py_NewRef(Py_None);
        goto end;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        double score = weight * scaled(&legs[0], i) + (1 - weight) * scaled(&legs[1], i);
        insert(best, i < k ? i : k, (Entry){score, legs[0].scores[i], i});
    }
    result = as_lists(best, legs, k, n);
end:
    free(best);
    give_back(&views[0]);
    give_back(&views[1]);
    return result;
}
