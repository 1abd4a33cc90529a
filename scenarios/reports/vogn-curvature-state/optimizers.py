"""Variational online Gauss-Newton: a Gaussian over the weights, whose precision comes from squared gradients"""

import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.optim.optimizer import Optimizer


class VOGN(Optimizer):
    """
    Takes a single group of parameters. The closure returns the loss, the gradient and the diagonal of the Gauss-Newton
    matrix of each parameter, and the size of the batch.
    """

    def __init__(self, params, train_set_size, lr=1e-2, beta=0.99, prior_prec=50.0, prec_init=2000.0, num_samples=1):
        defaults = {
            "train_set_size": train_set_size,
            "lr": lr,
            "beta": beta,
            "prior_prec": prior_prec,
            "prec_init": prec_init,
            "num_samples": num_samples,
        }
        super().__init__(params, defaults)

    def step(self, closure):
        defaults = self.defaults
        parameters = self.param_groups[0]["params"]
        if not torch.is_tensor(self.state["Precision"]):
            mean = parameters_to_vector(parameters).detach().clone()
            self.state["mu"] = mean
            self.state["Precision"] = torch.ones_like(mean) * defaults["prec_init"]
        precision, mu = self.state["Precision"], self.state["mu"]

        ggn_hat, mu_grad_hat = None, None
        for _ in range(defaults["num_samples"]):
            # Sample a parameter vector
            noise = torch.normal(mean=torch.zeros(len(mu)), std=1.0)
            vector_to_parameters(torch.addcdiv(mu, noise, torch.sqrt(precision)), parameters)
            loss, grad, ggn, size = closure()
            grad, ggn = parameters_to_vector(grad).div(size), parameters_to_vector(ggn).div(size)
            mu_grad_hat = grad if mu_grad_hat is None else mu_grad_hat + grad
            ggn_hat = ggn if ggn_hat is None else ggn_hat + ggn

        scale = defaults["train_set_size"] / defaults["num_samples"]
        mu_grad_hat, ggn_hat = mu_grad_hat.mul(scale), ggn_hat.mul(scale)
        # Update the precision, then the mean
        kept = precision.mul(defaults["beta"])
        precision = kept + ggn_hat.add(defaults["prior_prec"]).mul(1 - defaults["beta"])
        self.state["Precision"] = precision
        step = mu_grad_hat + torch.mul(mu, defaults["prior_prec"])
        self.state["mu"] = torch.addcdiv(mu, step, precision, value=-defaults["lr"])
        return loss

    def mc_prediction(self, forward, inputs):
        """The output for one sample of the weights"""
        parameters = self.param_groups[0]["params"]
        precision, mu = self.state["Precision"], self.state["mu"]
        noise = torch.normal(mean=torch.zeros(len(mu)), std=1.0)
        vector_to_parameters(torch.addcdiv(mu, noise, torch.sqrt(precision)), parameters)
        return forward(inputs)
