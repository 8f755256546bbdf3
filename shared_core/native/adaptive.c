/* The weight of the dense leg where it adapts to the query. */

#include "kernels.h"

#include <math.h>
#include <string.h>

/* How far the best of n > 0 scores stands out. The best are summed in descending order, as in
 * adaptive.py, so that the order of the scores does not change the result. */
static double stands_out(const double *scores, Py_ssize_t n, Adaptive how)
{
    double best[BLOCK] = {scores[0]}, worst = scores[0], sum = 0.0;
    Py_ssize_t size = 1;
    for (Py_ssize_t i = 1; i < n; i++) {
        double score = scores[i];
        worst = score < worst ? score : worst;
        Py_ssize_t at = size;
        while (at > 0 && score > best[at - 1])
            at--;
        if (at == how.best)
            continue;
        size += size < how.best;
        memmove(best + at + 1, best + at, (size_t)(size - 1 - at) * sizeof *best);
        best[at] = score;
    }
    double spread = best[0] - worst;
    if (!(spread > how.constant * fmax(fabs(best[0]), fabs(worst))))
        return 0.0;
    for (Py_ssize_t i = 0; i < size; i++)
        sum += best[i];
    return (best[0] - sum / (double)size) / spread;
}

double adaptive_weight(const double *dense, const double *sparse, Py_ssize_t n, Adaptive how)
{
    double odds = how.odds * stands_out(dense, n, how);
    double total = odds + stands_out(sparse, n, how);
    return total > 0.0 ? odds / total : how.odds / (1 + how.odds);
}
